/** Has something to write. */
export type BatchWriter = { writeNow(): void }

export type WriteBatching = {
  /** Calls `writeNow` at the end of this turn of the event loop. */
  add(writer: BatchWriter): void
}

/**
 * Defers the writes of one turn of the event loop to its end. A write wakes the peer process, which costs more than the bytes: with other work between
 * two writes the peer sleeps again and is woken for each; consecutive writes mostly find it awake.
 */
export function createWriteBatching(): WriteBatching {
  let due: BatchWriter[] = []
  let spare: BatchWriter[] = []

  function writeAll(): void {
    const writers = due
    due = spare
    for (const writer of writers) writer.writeNow()
    writers.length = 0
    spare = writers
  }

  return {
    add(writer) {
      if (due.length === 0) setImmediate(writeAll)
      due.push(writer)
    },
  }
}
