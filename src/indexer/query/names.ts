/** Names as both engines compare them: letters of ASCII in any case are one, and every other character is only itself. */
export function foldName(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())
}

/** A name of the customer's own for a message: short and without control characters. */
export function shownName(name: string): string {
  return name.slice(0, 100).replaceAll(/[^\x20-\x7e]/g, '?')
}
