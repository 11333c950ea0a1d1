/** Has something to write. */
export type BatchWriter = { writeNow(): void }

export type WriteBatching = {
  /** Calls `writeNow` at the end of this turn of the event loop. */
  add(writer: BatchWriter): void
}

/**
 * Puts the writes of one turn of the event loop off to its end, one after the other. A write wakes the process at the other side, which costs
 * more than the bytes; with other work between two writes it falls asleep again and is woken for each. Together most of them find it awake.
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
