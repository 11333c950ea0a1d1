/** A FIFO queue between a socket that pushes and an async reader. The producer checks `size` before it pushes. */
export type EventBuffer<Event> = {
  push(event: Event): void
  /** Removes the oldest event. */
  dropOldest(): Event | undefined
  size(): number
  /** Buffered events are still read; then the reader's loop ends. */
  end(): void
  /** Drops all buffered events. */
  clear(): void
  next(): Promise<IteratorResult<Event, undefined>>
}

/** The array is compacted when its head has moved this far and past the middle, so that a step takes constant time on average. */
const COMPACT_AT = 512

export function createEventBuffer<Event>(onRead: () => void): EventBuffer<Event> {
  let items: Event[] = []
  let head = 0
  let ended = false
  const readers: ((result: IteratorResult<Event, undefined>) => void)[] = []
  const size = (): number => items.length - head

  function shift(): Event | undefined {
    if (size() === 0) return undefined
    const event = items[head]
    head += 1
    if (head > COMPACT_AT && head * 2 > items.length) {
      items = items.slice(head)
      head = 0
    }
    return event
  }

  return {
    size,
    dropOldest: shift,
    push(event) {
      if (ended) return
      const reader = readers.shift()
      if (reader === undefined) items.push(event)
      else reader({ done: false, value: event })
    },
    end() {
      ended = true
      for (const reader of readers.splice(0)) reader({ done: true, value: undefined })
    },
    clear() {
      items = []
      head = 0
    },
    next() {
      const value = shift()
      if (value !== undefined) {
        onRead()
        return Promise.resolve({ done: false, value })
      }
      if (ended) return Promise.resolve({ done: true, value: undefined })
      return new Promise((resolve) => readers.push(resolve))
    },
  }
}
