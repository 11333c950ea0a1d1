/**
 * Idempotency keys of one dialog. The same input has the same key until it succeeded, so that a repetition after a lost response performs nothing twice.
 */
export type ActionKeys = { keyOf(input: unknown): string; succeeded(): void }

export function createActionKeys(newKey: () => string): ActionKeys {
  let current: { readonly text: string; readonly key: string } | undefined
  return {
    keyOf(input) {
      const text = JSON.stringify(input) ?? ''
      if (current?.text !== text) current = { text, key: newKey() }
      return current.key
    },
    succeeded() {
      current = undefined
    },
  }
}
