"""Stack-100M and its training step in PyTorch, written for CPU speed: the peer that the C++ engine is measured against.

Same architecture, parameter shapes and loss as ours.
Losses: mean cross-entropy + z_coef * mean(logsumexp^2), both over the unmasked tokens (target != -100).
"""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


@dataclass
class Config:
    vocab: int = 32768
    d_model: int = 512
    layers: int = 30
    heads: int = 8
    kv_heads: int = 2
    head_dim: int = 64
    d_ff: int = 1408
    max_seq: int = 2048
    theta: float = 10000.0
    nope_every: int = 4
    eps: float = 1e-5
    z_coef: float = 1e-4
    loss_chunk: int = 0  # tokens per chunk of the loss head; 0: all at once


PRESETS = {
    "stack100m": Config(),
    "rungA": Config(vocab=8192, d_model=256, layers=8, heads=4, kv_heads=2, d_ff=704),
    "tiny": Config(vocab=4096, d_model=128, layers=4, heads=2, kv_heads=1, d_ff=352),
}


class Norm(nn.Module):
    def __init__(self, n, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(n)), eps

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.weight.to(x.dtype), self.eps)


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Block(nn.Module):
    def __init__(self, c: Config, index: int):
        super().__init__()
        self.c, self.rope = c, c.nope_every <= 0 or (index + 1) % c.nope_every != 0
        q, kv = c.heads * c.head_dim, c.kv_heads * c.head_dim
        lin = lambda i, o: nn.Linear(i, o, bias=False)
        self.attn_norm, self.mlp_norm = Norm(c.d_model, c.eps), Norm(c.d_model, c.eps)
        self.q_norm, self.k_norm = Norm(c.head_dim, c.eps), Norm(c.head_dim, c.eps)
        self.wq, self.wk, self.wv, self.wo = lin(c.d_model, q), lin(c.d_model, kv), lin(c.d_model, kv), lin(q, c.d_model)
        self.gate, self.up, self.down = lin(c.d_model, c.d_ff), lin(c.d_model, c.d_ff), lin(c.d_ff, c.d_model)

    def forward(self, x, cos, sin):
        c, (B, T, _) = self.c, x.shape
        h = self.attn_norm(x)
        q = self.q_norm(self.wq(h).view(B, T, c.heads, c.head_dim)).transpose(1, 2)
        k = self.k_norm(self.wk(h).view(B, T, c.kv_heads, c.head_dim)).transpose(1, 2)
        v = self.wv(h).view(B, T, c.kv_heads, c.head_dim).transpose(1, 2)
        if self.rope:
            q, k = rotate(q, cos, sin).to(v.dtype), rotate(k, cos, sin).to(v.dtype)
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.wo(o.transpose(1, 2).reshape(B, T, -1))
        h = self.mlp_norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


def head_loss(h, w, t):
    """Sums over one chunk: cross-entropy, logsumexp^2, number of targets."""
    logits = F.linear(h, w).float()
    lse, valid = logits.logsumexp(-1), t != -100
    ce = lse - logits.gather(-1, t.clamp_min(0)[:, None])[:, 0]
    return (ce * valid).sum(), (lse.square() * valid).sum(), valid.sum()


class Stack(nn.Module):
    def __init__(self, c: Config):
        super().__init__()
        self.c = c
        self.emb = nn.Embedding(c.vocab, c.d_model)
        self.blocks = nn.ModuleList(Block(c, i) for i in range(c.layers))
        self.norm = Norm(c.d_model, c.eps)
        freq = 1.0 / c.theta ** (torch.arange(0, c.head_dim, 2).float() / c.head_dim)
        angle = torch.outer(torch.arange(c.max_seq).float(), freq)
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)
        for n, p in self.named_parameters():
            if p.ndim == 2:
                nn.init.normal_(p, std=0.02 * ((2 * c.layers) ** -0.5 if "wo." in n or "down." in n else 1))

    def forward(self, idx, targets=None):
        x, T = self.emb(idx), idx.shape[1]
        cos, sin = self.cos[:T], self.sin[:T]
        for b in self.blocks:
            x = b(x, cos, sin)
        x = self.norm(x)
        if targets is None:
            return F.linear(x, self.emb.weight)
        h, t, w = x.flatten(0, 1), targets.flatten(), self.emb.weight
        chunk = self.c.loss_chunk or h.shape[0]
        parts = [head_loss(h, w, t)] if chunk >= h.shape[0] else [
            checkpoint(head_loss, h[i:i + chunk], w, t[i:i + chunk], use_reentrant=False)
            for i in range(0, h.shape[0], chunk)]
        ce, z, n = (sum(p) for p in zip(*parts))
        return (ce + self.c.z_coef * z) / n.clamp_min(1)


def flops_per_token(c: Config, T: int):
    """Forward + backward, useful work only: 6 per matmul weight (body and head), causal attention counted as half."""
    q, kv = c.heads * c.head_dim, c.kv_heads * c.head_dim
    body = c.layers * (c.d_model * (2 * q + 2 * kv) + 3 * c.d_model * c.d_ff)
    return 6 * (body + c.vocab * c.d_model) + 6 * c.layers * q * T


class BatchedMuon(torch.optim.Optimizer):
    """Muon with all matrices of one shape orthogonalised together (bmm): fewer, larger calls than torch.optim.Muon."""

    def __init__(self, params, lr=0.02, momentum=0.95, weight_decay=0.1, steps=5, dtype=torch.float32):
        super().__init__(params, dict(lr=lr, momentum=momentum, weight_decay=weight_decay))
        self.steps, self.dtype = steps, dtype

    @torch.no_grad()
    def step(self):
        for g in self.param_groups:
            shapes = {}
            for p in g["params"]:
                shapes.setdefault(p.shape, []).append(p)
            for ps in shapes.values():
                grads = [p.grad for p in ps]
                bufs = [self.state[p].setdefault("m", torch.zeros_like(p)) for p in ps]
                torch._foreach_lerp_(bufs, grads, 1 - g["momentum"])
                x = torch.stack(torch._foreach_lerp(grads, bufs, g["momentum"])).to(self.dtype)
                tall = x.shape[1] > x.shape[2]
                x = x.mT.contiguous() if tall else x
                x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
                for _ in range(self.steps):
                    a = x @ x.mT
                    b = torch.baddbmm(a, a, a, beta=-4.7750, alpha=2.0315)
                    x = torch.baddbmm(x, b, x, beta=3.4445)
                x = (x.mT if tall else x).float()
                torch._foreach_mul_(ps, 1 - g["lr"] * g["weight_decay"])
                torch._foreach_add_(ps, list(x.unbind()), alpha=-g["lr"] * 0.2 * max(x.shape[1:]) ** 0.5)


def optimisers(model, kind="muon", fused=True):
    """kind: adamw (all parameters) | muon (torch.optim.Muon) | muon-batched (the class above); embeddings and norms on AdamW."""
    adam = lambda ps: torch.optim.AdamW(ps, lr=3e-4, betas=(0.9, 0.95), weight_decay=0.0, fused=fused)
    if kind == "adamw":
        return [adam(model.parameters())]
    mat = [p for n, p in model.named_parameters() if p.ndim == 2 and "emb" not in n]
    rest = [p for n, p in model.named_parameters() if p.ndim != 2 or "emb" in n]
    if kind == "muon-batched":
        return [BatchedMuon(mat), adam(rest)]
    return [torch.optim.Muon(mat, lr=0.02, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"), adam(rest)]
