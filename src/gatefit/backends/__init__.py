"""Circuit -> text or callable: the engine, and exporters for every format that engineers use."""
