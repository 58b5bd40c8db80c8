"""The parts of the optimum allocation (`opt`): its linear programmes and the choices that they leave."""
