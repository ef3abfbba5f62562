"""Our best explanation for each claim that does not hold on the generated months; told with the verdict, never tuned away."""

from __future__ import annotations

from collections.abc import Mapping

WHY: Mapping[str, str] = {}
