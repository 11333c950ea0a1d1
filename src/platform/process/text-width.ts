import stringWidth from 'string-width'

/** Columns that a text takes on a terminal: wide characters two, marks that combine none. */
export function textWidth(text: string): number {
  return stringWidth(text)
}
