"""AG-UI 1.0: what a stream of events says about why a run stopped, and what its thread waits for.

    bytes -> reader -> lifecycle -> RunSeen -> ledger -> Thread, and records for the classifier
                                                 `-> guard: may this resume be sent?

`reader` makes events of bytes, `lifecycle` runs of events, `ledger` threads of runs; `told` makes records of both.
`guard` is the consumer's duty before it sends, `producer` the agent's when it receives, `tap` watches both pass.
Values are in `values`, closed lists in `words`, what can be found and whose fault it is in `findings`.

Everything here is a reader of other people's streams: it keeps no content, and `ag-ui-protocol` is not needed.
"""
