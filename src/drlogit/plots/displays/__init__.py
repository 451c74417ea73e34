"""Pictures, in scikit-learn's Display convention.

A display is made by a ``from_…`` constructor, which computes what is needed and draws it, or from
that data directly; :meth:`plot` draws it (again).  Afterwards ``figure_`` and ``ax_`` hold the
figure and its axes, and other attributes with a trailing underscore the artists:

    RobustnessDisplay.from_estimators({"plain": lr, "robust": drlr}, X, y, kappa=1.0)
    RegularizationPathDisplay.from_data(X, y, kappa=1.0)
    CVSurfaceDisplay.from_estimator(cv)
    ConvergenceDisplay.from_results({"interior point": result})
    CoefficientsDisplay.from_estimators({"plain": lr, "robust": drlr})

Needs matplotlib (``pip install "drlogit[plot]"``), which is imported when something is drawn.
Log-losses are in nats.  Colours are those of Okabe and Ito, which colour-blind readers can tell
apart, and lines differ in style as well.
"""
