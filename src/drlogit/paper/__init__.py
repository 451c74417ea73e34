"""The first-order methods of Li, Huang and So (2019), for fixed λ and by a search over it."""
