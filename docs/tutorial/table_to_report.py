"""
From a table to a decision elsewhere
====================================

A hospital in Cleveland has records of patients with and without heart disease, and somebody has
fitted a scikit-learn pipeline to them. How fragile is it? Would another fit be less so? What can be
promised about new patients, and does it hold in other hospitals?

The table comes with drlogit (UCI heart disease, Janosi, Steinbrunn, Pfisterer and Detrano 1988,
CC BY 4.0). On the command line: ``drlogit demo``.
"""

# %%
# The model that is there
# -----------------------
# Some patients are kept aside before anything else is done: what is said about new patients rests
# on them.

from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import drlogit

table = drlogit.datasets.load_heart_disease()
home = table[table["hospital"] == "cleveland"].drop(columns="hospital")
X, X_kept, y, y_kept = train_test_split(
    home.drop(columns="disease"), home["disease"], test_size=0.4, random_state=0
)
numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
columns = make_column_transformer(
    (numbers, make_column_selector(dtype_include="number")),
    (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
)
pipeline = make_pipeline(columns, LogisticRegression()).fit(X, y)

# %%
# What may be wrong
# -----------------
# One diagnosis in fifty may be wrong, numbers may be off by a twentieth of a standard deviation
# on average, and categories may be wrong in one patient of fifty. A *ball* says so, in the units
# of the table. These are alternatives within one budget, not a sum.

ball = drlogit.Ball.tolerating(labels=0.02, numbers=0.05, categories=0.02)
print(ball)

# %%
# The audit
# ---------
# How much must go wrong until the decisions fail, and through which column? ``to_html`` writes
# the page as one file; a notebook shows it in place.

report = drlogit.audit(pipeline, X_kept, y_kept, ball=ball.resolve(X, y))
report

# %%
# The column to check first is the depression of the ST segment: many patients have 0, and a small
# change reverses their prediction.

report.to_frame("columns")

# %%
# A fit for this ball
# -------------------
# The robust fit has the smallest log-loss in the worst case of all linear models on these rows. A
# lower bound for all of them proves it: the *gap* is the difference.

model = drlogit.DRLogisticRegression(ball=ball, missing="median").fit(X, y)
print(
    f"worst-case log-loss {model.worst_case_loss_:.4f}, gap below {max(model.dual_gap_, 1e-6):.0e}"
)
model.coefficient_table().round(2)

# %%
# Is it less fragile than the pipeline? Both are measured in the same ball.

both = {"robust": model, "pipeline": pipeline}
drlogit.audit(both, X_kept, y_kept, metric="log_loss").to_frame()

# %%
# A promise about new patients, and a cut-off
# -------------------------------------------
# The numbers so far are about these rows. With 95 % confidence, what holds in the population of
# the patients who were kept aside, and in every population within the ball around it?

promise = drlogit.guarantee(model, X_kept, y_kept, random_state=0)
print(promise)

# %%
# A hundred patients promise little. A cut-off can be chosen by what is promised about it:

choice = drlogit.choose_threshold(model, X_kept, y_kept, max_fpr=0.4, random_state=0)
print(choice)

# %%
# Another hospital
# ----------------
# Before anybody is scored: which columns moved? This is the table as it was recorded in
# Switzerland.

import warnings

recorded = drlogit.datasets.load_heart_disease(as_recorded=True)
there = recorded[recorded["hospital"] == "switzerland"]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the same is said below
    found = drlogit.measure_shift(model, X_kept, y_kept, there[X.columns], there["disease"])
print(found)

# %%
# Every Swiss patient has a cholesterol of 0: missing values, coded as zero.
#
# Saving the model and its proof
# ------------------------------
# The model is saved as JSON, which runs no code when it is read. Others can check the proof with
# ``drlogit verify model.json data.csv --proof proof.npz``, where ``data.csv`` has the rows of the
# fit.

drlogit.save_model(model, "model.json")
model.save_proof("proof.npz", X, y)
