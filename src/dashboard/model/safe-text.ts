/** A name longer than this is cut; the full text is never needed to recognise a contract. */
export const NAME_CHARACTERS_MAX = 64

/**
 * Invisible or direction-changing characters, with which one name can be made to look like another: controls, zero-width and
 * bidirectional marks, line separators, variation selectors, tags and lone surrogates.
 */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu
/** More combining marks than this on one letter climb out of their line. */
const STACKED_MARKS = /(\p{M}{2})\p{M}+/gu

/** Text of unknown origin as it may be shown: one line, visible characters only, of bounded length. */
export function cleanName(text: unknown): string {
  if (typeof text !== 'string') return ''
  // Cut before the work as well, so that a name of megabytes costs nothing.
  const seen = text
    .slice(0, NAME_CHARACTERS_MAX * 8)
    .normalize('NFC')
    .replace(UNSEEN, '')
    .replace(STACKED_MARKS, '$1')
  const oneLine = seen.replace(/\s+/gu, ' ').trim()
  const characters = Array.from(oneLine)
  return characters.length <= NAME_CHARACTERS_MAX
    ? oneLine
    : `${characters.slice(0, NAME_CHARACTERS_MAX - 1).join('')}…`
}

const HEX = /^0x[0-9a-f]+$/

/** `0xdac1…1ec7`; anything that is not hex is cleaned and cut as a name. */
export function shortHex(text: unknown, head = 4, tail = 4): string {
  if (typeof text !== 'string' || !HEX.test(text)) return cleanName(text)
  if (text.length <= head + tail + 3) return text
  return `${text.slice(0, head + 2)}…${text.slice(-tail)}`
}

/** A slot is a number far more often than a hash: leading zeros tell nothing. */
export function shortSlot(text: unknown): string {
  if (typeof text !== 'string' || !HEX.test(text)) return cleanName(text)
  const digits = text.slice(2).replace(/^0+/, '') || '0'
  return digits.length <= 8 ? `0x${digits}` : shortHex(text, 4, 4)
}

export function isAddress(text: string): boolean {
  return /^0x[0-9a-f]{40}$/i.test(text)
}
