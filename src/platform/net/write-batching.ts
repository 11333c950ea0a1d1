/** Has something to write. */
export type TurnWriter = { writeNow(): void }

export type TurnWrites = {
  /** Calls `writeNow` at the end of this turn of the event loop. */
  add(writer: TurnWriter): void
}

/**
 * Puts the writes of one turn of the event loop off to its end, one after the other. A write wakes the process at the other side, which costs
 * more than the bytes; with other work between two writes it falls asleep again and is woken for each. Together most of them find it awake.
 */
export function createTurnWrites(): TurnWrites {
  let due: TurnWriter[] = []
  let spare: TurnWriter[] = []

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
