"""LLVM text: the writer and the one expression emitter of every target that LLVM serves."""
from .memory import Pointer
from .ops import Ops
from .text import Branch, Dialect, Function, Loop, Module
from .values import BYTES, MEMORY, REGISTER, SMALL, Val, literal, memory_type, register_type, vector

__all__ = ["BYTES", "MEMORY", "REGISTER", "SMALL", "Branch", "Dialect", "Function", "Loop", "Module", "Ops", "Pointer", "Val",
           "literal", "memory_type", "register_type", "vector"]
