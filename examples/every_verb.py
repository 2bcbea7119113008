"""Every verb from Python, cell by cell as in a notebook: digits as images, wine as a DataFrame.

A quarter of the training labels is wrong. What is printed beside the accuracy is what the audit
says of the labels, and how many of its suspects are truly wrong. It takes about a minute on a CPU.

    python examples/every_verb.py
"""

# %%
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_wine

import labelproof as lp
from labelproof.noise import corrupt, symmetric_matrix

folder = Path(tempfile.mkdtemp())

# %% Digits: train by a configuration, measure on clean labels, and keep the run.
configuration = lp.Configuration(
    "digits", noise="symmetric:0.25", loss="gce(q=0.7)", network="cnn4(width=12)", epochs=15
)
run = lp.train(configuration, folder / "digits", device="cpu")
print(f"digits: {run.evaluate().accuracy:.1f}% of {run.evaluate().n} test images")

# %% The same folder later, or by another program; nothing is trained again.
run = lp.load_run(folder / "digits")
print(f"digits: {len(run.metrics)} epochs, loss {run.configuration.loss}")

# %% Wine, a DataFrame: put wrong labels into it.
wine: Any = load_wine(as_frame=True)
noisy = corrupt(wine.target.to_numpy(), symmetric_matrix(3, 0.25), seed=1).noisy
table = wine.data.assign(kind=np.array(["Barolo", "Grignolino", "Barbera"])[noisy])
wrong = set(np.flatnonzero(noisy != wine.target))

# %% Fit it as it is, and predict.
run = lp.fit(table, "kind", output=folder / "wine")
told = run.predict(wine.data)["label"].map({"Barolo": 0, "Grignolino": 1, "Barbera": 2})
print(f"wine: {100 * np.mean(told == wine.target):.1f}% of the true labels")

# %% Which labels are wrong? The run judges each by classifiers that have not seen it.
audit = lp.audit(run)
suspects = set(audit.suspects.index)
print(f"wine: noise rate {audit.noise_rate.value:.2f}, {len(wrong) / len(table):.2f} in truth")
print(f"wine: {len(suspects)} suspects, {len(suspects & wrong)} of them wrong")
audit.write(folder / "wine-audit")  # then, in the browser: lp.review(folder / "wine-audit")

# %% Choose a loss by the noisy labels alone.
found = lp.tune(table, "kind", trials=3, folds=1, epochs=20, device="cpu")
print(f"wine: chose {found.best.loss if found.best else 'nothing'} of {len(found.trials)}")
