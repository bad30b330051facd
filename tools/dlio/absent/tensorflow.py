"""Stands for TensorFlow, whose profiler DLIO imports whether it is asked for or not. Nothing of it is used."""
