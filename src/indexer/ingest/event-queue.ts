/** Events in order of arrival, for one reader. */
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
