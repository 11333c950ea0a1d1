/** Longer names are truncated. */
export const NAME_CHARACTERS_MAX = 64

/**
 * Invisible or direction-changing characters, with which one name can be made to look like another: controls, zero-width and
 * bidirectional marks, line separators, variation selectors, tags and lone surrogates.
 */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu
/** More combining marks than this on one letter would leave the line. */
const STACKED_MARKS = /(\p{M}{2})\p{M}+/gu

/** Untrusted text as it may be shown: one line, visible characters only, bounded length. */
export function cleanName(text: unknown): string {
  if (typeof text !== 'string') return ''
  // Truncated before normalization too, so that a very long name costs nothing.
  const seen = text
    .slice(0, NAME_CHARACTERS_MAX * 8)
    .normalize('NFC')
    .replace(INVISIBLE, '')
    .replace(STACKED_MARKS, '$1')
  const oneLine = seen.replace(/\s+/gu, ' ').trim()
  const characters = Array.from(oneLine)
  return characters.length <= NAME_CHARACTERS_MAX
    ? oneLine
    : `${characters.slice(0, NAME_CHARACTERS_MAX - 1).join('')}…`
}

const HEX = /^0x[0-9a-f]+$/

/** `0xdac1…1ec7`; text that is not hex is cleaned as a name. */
export function shortHex(text: unknown, head = 4, tail = 4): string {
  if (typeof text !== 'string' || !HEX.test(text)) return cleanName(text)
  if (text.length <= head + tail + 3) return text
  return `${text.slice(0, head + 2)}…${text.slice(-tail)}`
}

/** A slot is often a small number, so leading zeros are removed. */
export function shortSlot(text: unknown): string {
  if (typeof text !== 'string' || !HEX.test(text)) return cleanName(text)
  const digits = text.slice(2).replace(/^0+/, '') || '0'
  return digits.length <= 8 ? `0x${digits}` : shortHex(text, 4, 4)
}

export function isAddress(text: string): boolean {
  return /^0x[0-9a-f]{40}$/i.test(text)
}
