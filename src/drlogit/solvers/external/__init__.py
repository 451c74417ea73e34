"""Other packages as references: cvxpy with Clarabel, and IPOPT."""
