module ferrite.test/linearizability

go 1.26.0

// Decides whether a history is linearizable.
require github.com/anishathalye/porcupine v1.3.1
