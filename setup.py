"""Lets tools that still call setup.py build the package; everything is said in pyproject.toml."""
from setuptools import setup

setup()
