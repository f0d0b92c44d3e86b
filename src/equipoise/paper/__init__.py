"""The paper's experiments, reproduced: instances, items, expected numbers and the report  [Sect. 5, App. C]."""
