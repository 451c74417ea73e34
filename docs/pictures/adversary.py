"""What the worst case does to two clouds of points."""

import matplotlib.pyplot as plt
import numpy as np

import drlogit

rng = np.random.default_rng(3)
y = np.repeat([0, 1], 40)
X = rng.standard_normal((80, 2)) + np.where(y, 1.3, -1.3)[:, None] * [1.0, 0.6]
models = {
    "plain": drlogit.solve(X, y, drlogit.Ball(0.0)),
    "robust": drlogit.solve(X, y, drlogit.Ball(0.15, kappa=1.0, feature_costs=None)),
}
fig, axes = plt.subplots(1, 2, figsize=(7.6, 3.5), sharex=True, sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    ball = drlogit.Ball(0.15, 1.0, norm="l2", feature_costs=None)
    worst = drlogit.worst_case(model, X, y, ball=ball).distribution()
    for label, color in ((0, "C0"), (1, "C1")):
        ax.scatter(*X[y == label].T, s=14, c=color)
    flipped = worst.index[worst.flipped]
    ax.scatter(*X[flipped].T, s=70, facecolors="none", edgecolors="k", linewidths=0.9)
    line = np.array([-4.0, 4.0])
    slope, rise = model.coef[0] / model.coef[1], model.intercept / model.coef[1]
    for margin, style in ((0.0, "-"), (2.0, ":"), (-2.0, ":")):
        ax.plot(line, -slope * line - rise + margin / model.coef[1], "k" + style, linewidth=0.9)
    ax.set(title=f"{name}: worst-case log-loss {worst.supremum:.2f}", xlim=(-4, 4), ylim=(-4, 4))
fig.tight_layout()
