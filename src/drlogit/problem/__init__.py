"""The robust problem: losses, norms, the transport cost, the certificate, what a fit returns."""
