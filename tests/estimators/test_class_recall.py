"""A rare class that a model hardly predicts is spoken of, with what can help."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import stated
from sklearn.metrics import recall_score

NEVER = "class 'sick' is almost never predicted: 6.00% of the samples have it"


def rare(n=1000, share=0.06, shift=1.0, seed=3):
    """Samples of a class of this share that two features tell apart, not too well."""
    rng = np.random.default_rng(seed)
    ill = np.arange(n) < round(share * n)
    X = rng.normal(size=(n, 4))
    X[:, :2] += shift * ill[:, None]
    return X, np.where(ill, "sick", "fine")


def test_fit_warns_of_a_class_that_vanishes_and_says_what_epsilon_and_kappa_do_to_it():
    X, y = rare()
    with pytest.warns(UserWarning, match=NEVER) as said:
        model = stated.classifier(0.1, 5.0).fit(X, y)
    (text,) = (str(each.message) for each in said)
    assert "The radius epsilon = 0.1 moves probabilities to the class shares" in text
    assert "epsilon/kappa allows 2.00% of all labels to be wrong, which is 33% of the size" in text
    assert "class_weight='balanced'" in text
    # The threshold that it names predicts the class about as often as it occurs, and finds it.
    threshold = float(text.split("a threshold of ")[1].split(" predicts")[0])
    found = model.predict_proba(X)[:, 1] >= threshold
    assert 0.03 < found.mean() < 0.12
    assert found[y == "sick"].mean() > 0.3


def test_remedies_bring_it_back_without_a_word_and_several_classes_get_no_threshold():
    X, y = rare(shift=2.0)
    with pytest.warns(UserWarning, match=NEVER):
        stated.classifier(0.5, 20.0).fit(X, y)
    for options in ({"epsilon": 0.5, "class_weight": "balanced"}, {"epsilon": 0.01}):
        model = stated.classifier(kappa=20.0, **options).fit(X, y)
        assert recall_score(y, model.predict(X), pos_label="sick") > 0.5
    y = np.where((y == "fine") & (X[:, 2] > 0.0), "well", y)
    with pytest.warns(UserWarning, match="class 'sick' is almost never predicted") as said:
        stated.classifier(0.5, 20.0).fit(X, y)
    assert "threshold" not in str(said[0].message)
