/** Events in the order they came, for one reader that takes them as they are there. */
export class EventQueue<Event> {
  #events: Event[] = []
  #wake: (() => void) | undefined

  get size(): number {
    return this.#events.length
  }

  push(event: Event): void {
    this.#events.push(event)
    this.#wake?.()
    this.#wake = undefined
  }

  async take(): Promise<Event> {
    while (this.#events.length === 0) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    return this.#events.shift() as Event
  }
}
