"""DFTracer 1's package for debugging: ``dftracer.dbg.logger`` is ``dftracer.logger``."""
