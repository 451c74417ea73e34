"""
From a raw table to a decision elsewhere
========================================

A hospital in Cleveland has records of patients with and without heart disease. We fit a model to
them, say in plain words what may be wrong with the table, and look at three questions. How bad can
it get? What can we promise about new patients? Does the promise hold in other hospitals?

The table comes with drlogit (UCI heart disease, Janosi, Steinbrunn, Pfisterer and Detrano 1988,
CC BY 4.0). On the command line: ``drlogit demo --write .``.
"""

# %%
# The table
# ---------
# It has text, numbers and missing entries, as they were written down in four hospitals.

import textwrap

import pandas as pd

import drlogit

table = drlogit.datasets.load_heart_disease()
table.groupby("hospital")["disease"].value_counts().unstack()

# %%
# We keep a third of Cleveland's patients aside *before anything else is done*. What we will say
# about new patients rests on them. (The order of this table has no meaning; draw the rows at random
# if yours does.)

here = table[table["hospital"] == "cleveland"].drop(columns="hospital")
seen, unseen = here[:200], here[200:]
X, y = seen.drop(columns="disease"), seen["disease"]
X_unseen, y_unseen = unseen.drop(columns="disease"), unseen["disease"]
X.head()

# %%
# What may be wrong
# -----------------
# We say that one diagnosis in twenty may be wrong. Everything else has its default, the sampling
# error. These are alternatives, not a sum. :meth:`drlogit.Ball.tolerating` turns them into a ball:
# a budget ε (epsilon), and what each kind of change uses up of it.

ball = drlogit.Ball.tolerating(labels=0.05)
model = drlogit.DRLogisticRegression(ball=ball, missing="median").fit(X, y)
print(*(textwrap.fill(line, 90) for line in model.ball_.allowed()), sep="\n")

# %%
# Every fit has a certificate: two numbers about the fitted rows. However these rows are changed
# within the tolerances, the mean log-loss of this model is at most the first number. No linear
# model has a worst case below the second. So the model is optimal up to the difference, the *gap*.

worst, gap = model.worst_case_loss_, max(model.dual_gap_, 1e-6)
print(f"{worst:.4f} nats in the worst case; no linear model is below {worst - gap:.4f}")

# %%
# These are the coefficients. Those of a category compare its levels with the average patient:

model.coefficient_table()[["column", "level", "coefficient", "odds_ratio"]].round(2)

# %%
# The report
# ----------
# How bad can it get, for whom, and by which change? We compare the robust model with a plain
# logistic regression that is fitted to the same rows. The page has a slider for ε: at zero,
# nothing is wrong with the data. ``report.to_html("report.html")`` writes the page as one
# file; a notebook shows it in place.

from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

plain = make_pipeline(
    make_column_transformer(
        (
            make_pipeline(SimpleImputer(strategy="median"), StandardScaler()),
            make_column_selector(dtype_include="number"),
        ),
        (
            OneHotEncoder(handle_unknown="ignore"),
            make_column_selector(dtype_exclude="number"),
        ),
    ),
    LogisticRegression(max_iter=1000),
).fit(X, y)
report = drlogit.audit(
    {"robust": model, "plain": plain},
    X_unseen,
    y_unseen,
    by="sex",
    epsilons=[0.0, 0.05, 0.1, 0.2],
)
print(*(textwrap.fill(line, 90) for line in report.verdict()), sep="\n")
report

# %%
# A promise about new patients
# ----------------------------
# The certificate is about the rows of the fit. From the rows kept aside we can make a statement
# about the population of Cleveland, and about every population that differs from it by no more than
# the tolerances, with a confidence of 95 %.

promise = drlogit.guarantee(model, X_unseen, y_unseen, random_state=0)
print(*(textwrap.fill(line, 90) for line in str(promise).splitlines()), sep="\n")

# %%
# Other hospitals
# ---------------
# Patients in Budapest, Switzerland and Long Beach are other populations. Are they within what we
# tolerated? Nobody can know in advance; here we can look. ``loss_covered`` is the largest log-loss
# within the ball. The log-loss changes for two reasons: the patients are different ("other rows"),
# or patients with equal scores are ill more or less often ("other answers"). It warns of
# columns that left the range of Cleveland.

import warnings

warnings.simplefilter("ignore", UserWarning)
shifts = {}
for hospital, rows in table[table["hospital"] != "cleveland"].groupby("hospital"):
    X_there, y_there = rows[X.columns], rows["disease"]
    shifts[hospital] = drlogit.measure_shift(model, X_unseen, y_unseen, X_there, y_there)
pd.DataFrame(
    {
        hospital: {
            "log-loss": found.loss_new,
            "covered": found.loss_covered,
            "radii": found.distance,
            "from other rows": found.from_rows,
            "from other answers": found.from_answers,
        }
        for hospital, found in shifts.items()
    }
).T.round(3)

# %%
# What moved between Cleveland and Long Beach?

print(*(textwrap.fill(line, 90) for line in str(shifts["long-beach"]).splitlines()), sep="\n")

# %%
# A tolerance is a statement about what you expect, not about what will happen.
#
# Saving the model and its proof
# ------------------------------
# The model is saved as JSON. Unlike a pickle, the file runs no code when it is loaded. Others can
# check the certificate with the proof: ``drlogit verify model.json data.csv --proof proof.npz``,
# where ``data.csv`` has the rows of the fit.

drlogit.save_model(model, "model.json")
model.save_proof("proof.npz", X, y)

# %%
# With ``holdout=``, a report also writes a paragraph for a reviewer:

unseen_rows = X_unseen, y_unseen
reviewed = drlogit.audit({"robust": model}, *unseen_rows, by="sex", holdout=unseen_rows)
print(textwrap.fill(reviewed.to_paragraph(), 90))
