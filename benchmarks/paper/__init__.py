"""The experiments of Li, Huang and So (2019), run here and set beside what the paper prints.

python -m benchmarks.paper all --quick           # a few minutes; `make reproduce`
python -m benchmarks.paper all --out results     # everything: about an hour of one core
python -m benchmarks.paper table2 figure3        # or a part

published   what the paper prints, and its settings
datasets    its public data sets by name
released    the authors' released code, in NumPy
times       Tables 1, 2 and 4: processor time of every method, with its certified gap
accuracy    Table 3: test accuracy of plain, regularised and robust models
curves      Figure 3: convergence of the first-order methods at fixed λ
theory      Proposition 4.1 and Theorem 4.2, checked on three problems
figures     Figures 2 and 3, the growth of the gap, the rate
rows        what has been measured
"""
