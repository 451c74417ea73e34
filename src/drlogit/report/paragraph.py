"""An audit in one paragraph, for the methods section of a paper."""

from __future__ import annotations

from ..robustness.audited_models import AuditOutcome


def paragraph(report: AuditOutcome, name: str) -> str:
    """The model, its tolerances, its certificate and its guarantee, for a methods section."""
    audit, outcome = report.audited[name], next(m for m in report.models if m.name == name)
    fit, said = audit.measured.fit, [f"{name} is a linear classifier."]
    if fit is not None and fit.result_ is not None:
        from .. import __version__

        result, allowed = fit.result_, " ".join(fit.ball_.allowed())
        said = [
            f"The model was fitted by distributionally robust logistic regression (drlogit "
            f"{__version__}). The fit minimises the largest expected log-loss over all "
            f"distributions within a Wasserstein ball around the data. The ball allows these "
            f"errors in the data: {allowed}",
            f"On the data of the fit, the worst-case log-loss is {result.objective:.3f}; no linear "
            f"model is lower by more than {max(result.gap, fit.tol):.0e}."
            if result.converged
            else f"The fit is not certified: its duality gap is {result.gap:.1e}.",
        ]
    found = report.guarantees.get(name)
    if found is None:
        said.append(
            f"On {report.n_samples} rows, the log-loss is {outcome.loss:.3f} and the error is "
            f"{outcome.error:.1%}."
        )
        return " ".join(said)
    loss = f"at most {found.loss:.3f}" if not found.no_limit else f"not limited ({found.no_limit})"
    said += [
        f"On {found.n} rows that the model had not seen, the log-loss is {found.mean_loss:.3f} and "
        f"the error is {found.mean_error:.1%}.",
        f"With {found.confidence:.0%} confidence, in the population of these rows and in every "
        f"population within the same ball around it, the expected log-loss is {loss} and the error "
        f"is at most {found.error:.1%}.",
        *([found.says_nothing] if found.says_nothing else []),
    ]
    return " ".join(said)
