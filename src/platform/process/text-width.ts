import stringWidth from 'string-width'

/** Columns of a text on a terminal: two for wide characters, none for combining marks. */
export function textWidth(text: string): number {
  return stringWidth(text)
}
