import stringWidth from 'string-width'

/** The role of a text; `CODES` maps it to a colour. */
export type Tone = 'plain' | 'strong' | 'quiet' | 'good' | 'warn' | 'bad' | 'accent'

export type Piece = { readonly text: string; readonly tone?: Tone }
export type Line = readonly Piece[]

/** Select Graphic Rendition codes (ECMA-48, 8.3.117): on, off. The 16 basic colours follow the theme of the terminal. */
const CODES: Readonly<Record<Tone, readonly [number, number] | undefined>> = {
  plain: undefined,
  strong: [1, 22],
  quiet: [2, 22],
  good: [32, 39],
  warn: [33, 39],
  bad: [31, 39],
  accent: [36, 39],
}

/** The line as text of at most this width, coloured if `colour` is set. */
export function paintLine(line: Line, { width, colour }: { readonly width: number; readonly colour: boolean }): string {
  let room = width
  let painted = ''
  for (const { text, tone = 'plain' } of line) {
    if (room <= 0) break
    const fitting = cutText(text, room)
    room -= stringWidth(fitting)
    const codes = colour ? CODES[tone] : undefined
    painted += codes === undefined ? fitting : `\u001b[${codes[0]}m${fitting}\u001b[${codes[1]}m`
  }
  return painted
}

/** Colours are for terminals without NO_COLOR (https://no-color.org). */
export function wantsColour(process: Pick<NodeJS.Process, 'env' | 'stdout'>): boolean {
  const { NO_COLOR: none, TERM: terminal } = process.env
  return process.stdout.isTTY && (none === undefined || none === '') && terminal !== 'dumb'
}

function cutText(text: string, width: number): string {
  if (stringWidth(text) <= width) return text
  let kept = ''
  let used = 0
  for (const character of text) {
    const wide = stringWidth(character)
    if (used + wide > width - 1) break
    kept += character
    used += wide
  }
  return width > 0 ? `${kept}…` : ''
}

export function lineWidth(line: Line): number {
  return line.reduce((sum, { text }) => sum + stringWidth(text), 0)
}

export function padText(text: string, width: number, side: 'left' | 'right' = 'left'): string {
  const cut = cutText(text, width)
  const blanks = ' '.repeat(Math.max(0, width - stringWidth(cut)))
  return side === 'left' ? cut + blanks : blanks + cut
}
