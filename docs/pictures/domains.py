"""One sample: what its moves cost, what they yield, and the hull of the prefixes."""

import itertools

import matplotlib.pyplot as plt
import numpy as np

margin = 2.0
gains, costs = np.array([1.6, 2.2, 1.1, 0.7]), np.array([0.4, 1.0, 0.9, 1.0])
order = np.argsort(-gains / costs)


def loss(gain):
    """Log-loss after moves that gain so much."""
    return np.logaddexp(0.0, gain - margin)


fig, ax = plt.subplots(figsize=(6.0, 3.4))
for chosen in itertools.product((0.0, 1.0), repeat=4):
    ax.plot(np.dot(chosen, costs), loss(np.dot(chosen, gains)), "o", color="0.75", markersize=4)
x = np.append(0.0, np.cumsum(costs[order]))
v = loss(np.append(0.0, np.cumsum(gains[order])))
ax.plot(x, v, "o", color="C0", markersize=5, label="first items by gain/cost")
hull = [0]
for k in range(1, x.size):
    while len(hull) > 1 and (v[k] - v[hull[-1]]) * (x[hull[-1]] - x[hull[-2]]) >= (
        v[hull[-1]] - v[hull[-2]]
    ) * (x[k] - x[hull[-1]]):
        hull.pop()
    hull.append(k)
ax.plot(x[hull], v[hull], "-", color="C1", label="hull: the adversary's offers")
ax.set(xlabel="cost of the moves", ylabel="loss of the sample (nats)")
ax.legend()
fig.tight_layout()
