"""The sentence search against an independent float64 forward pass of the same weights."""
from math import erf, sqrt

import numpy as np
import pytest
import sentence_search
from minilm import model_directory

try:
    DIRECTORY = model_directory()
except FileNotFoundError as error:
    pytest.skip(str(error), allow_module_level=True)

TEXTS = [
    "error",
    "How do I catch an error?",
    "Größe, naïve façade — 日本語のテキスト, emoji 🙂 and ﬁ ligature.",
    " ".join(f"sentence number {i} talks about loops, values and exceptions." for i in range(60)),
]


def _softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _norm(x, weights, name):
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
    return scaled * weights[f"{name}.LayerNorm.weight"] + weights[f"{name}.LayerNorm.bias"]


def _dense(x, weights, name):
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def _gelu(x):
    return x * 0.5 * (1.0 + np.vectorize(erf)(x / sqrt(2.0)))


def oracle(weights, ids):
    """The published model in float64: BERT encoder, mean pooling, length one."""
    n = len(ids)
    x = weights["embeddings.word_embeddings.weight"][ids] + weights["embeddings.position_embeddings.weight"][:n]
    x = _norm(x + weights["embeddings.token_type_embeddings.weight"][0], weights, "embeddings")
    for i in range(6):
        at = f"encoder.layer.{i}"
        q, k, v = (_dense(x, weights, f"{at}.attention.self.{s}").reshape(n, 12, 32).transpose(1, 0, 2)
                   for s in ("query", "key", "value"))
        context = _softmax(q @ k.transpose(0, 2, 1) / sqrt(32.0)) @ v
        context = context.transpose(1, 0, 2).reshape(n, 384)
        x = _norm(x + _dense(context, weights, f"{at}.attention.output.dense"), weights, f"{at}.attention.output")
        inner = _gelu(_dense(x, weights, f"{at}.intermediate.dense"))
        x = _norm(x + _dense(inner, weights, f"{at}.output.dense"), weights, f"{at}.output")
    mean = x.mean(0)
    return mean / np.linalg.norm(mean)


@pytest.fixture(scope="module")
def weights():
    from safetensors.numpy import load_file
    return {name: t.astype(np.float64) for name, t in load_file(DIRECTORY / "model.safetensors").items() if t.dtype == np.float32}


@pytest.fixture(scope="module")
def tokenizer():
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(str(DIRECTORY / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    return tokenizer


@pytest.mark.parametrize("text", TEXTS, ids=["word", "sentence", "unicode", "truncated"])
def test_embedding_matches_float64(text, weights, tokenizer):
    ids = tokenizer.encode(text).ids
    got = sentence_search.embed([text])
    assert got.shape == (1, 384) and got.dtype == np.float32
    assert np.abs(got[0] - oracle(weights, ids)).max() <= 2e-6


def test_the_long_text_is_cut(tokenizer):
    assert len(tokenizer.encode(TEXTS[3]).ids) == 256
    same = TEXTS[3] + " and a tail that is never seen"
    assert np.array_equal(sentence_search.embed([TEXTS[3]]), sentence_search.embed([same]))


def test_embeddings_have_length_one_and_do_not_depend_on_their_neighbours():
    together = sentence_search.embed(TEXTS[:3])
    apart = np.concatenate([sentence_search.embed([t]) for t in TEXTS[:3]])
    assert np.array_equal(together, apart)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1.0, rtol=1e-6)


def test_search_finds_the_topic():
    topics = {name: text for name, text in sentence_search.help_topics().items() if name in ("try", "lambda", "integers", "import", "pass")}
    found = sentence_search.search("how do I catch an error", topics)
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    assert found[0][0] == "try"


def test_topics_are_spread_over_the_alphabet():
    five = list(sentence_search.help_topics(5))
    assert len(five) == 5 and five == sorted(five) and five[0] != five[-1]
    assert len(sentence_search.help_topics(10_000)) == len(sentence_search.help_topics())


def test_command_line_prints_results_and_times(capsys):
    assert sentence_search.main(["how do I catch an error", "--topics", "3", "--show", "2"]) == 0
    out = capsys.readouterr().out
    assert "texts per second" in out and "attention" in out and "score" in out
