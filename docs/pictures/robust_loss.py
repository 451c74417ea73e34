"""The robust loss of a margin, and the plain one."""

import matplotlib.pyplot as plt
import numpy as np

u = np.linspace(-3.0, 6.0, 400)
plain = np.logaddexp(0.0, -u)
kink = 2.5  # κλ
fig, ax = plt.subplots(figsize=(6.0, 3.2))
ax.plot(u, plain, "--", label="log-loss h(u)")
ax.plot(u, plain + np.maximum(u - kink, 0.0), label="robust loss h(u) + (u − κλ)₊")
ax.axvline(kink, color="0.7", linewidth=0.8)
ax.text(kink - 0.1, 1.5, "κλ: from here on the\nadversary flips the label", ha="right")
ax.set(xlabel="margin u (right and sure →)", ylabel="nats", ylim=(0.0, 3.6))
ax.legend(loc="upper center")
fig.tight_layout()
