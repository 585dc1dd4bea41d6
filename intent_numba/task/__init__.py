"""The task program: its data, text and verifier."""
from .program import (Axis, Combine, Contract, For, Free, Graph, If, Loop, Node, Param, Phase, Program, Reduce, Resource,
                      Scan, Stage, Stmt, Store, Update)

__all__ = ["Axis", "Combine", "Contract", "For", "Free", "Graph", "If", "Loop", "Node", "Param", "Phase", "Program", "Reduce",
           "Resource", "Scan", "Stage", "Stmt", "Store", "Update"]
