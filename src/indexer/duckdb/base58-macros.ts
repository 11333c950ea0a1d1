/**
 * Base58 as macros of the engine, which has no function for it and no numbers larger than 128 bits. A text of n digits is a sum of digit × 58^k. The
 * powers of 58 are written here in limbs of 24 bits, so each limb of the sum is an inner product of doubles below 2^53, which is exact; one pass then
 * carries from limb to limb. Encoding is the same with powers of 256 in limbs of four digits.
 */

const ALPHABET = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
/** Bytes and digits of the longest value: a signature has 64 bytes and 88 digits. */
const BYTES_MAX = 66
const DIGITS_MAX = 90
const BYTE_LIMB = 2n ** 24n
const DIGIT_LIMB = 58n ** 4n

/** Limbs of the powers of `base`: one list for each limb, with one number for each power. */
function powers(base: bigint, limb: bigint, powerCount: number, limbCount: number): string[] {
  return Array.from({ length: limbCount }, (_, at) => {
    const column = Array.from(
      { length: powerCount },
      (__, power) => (base ** BigInt(power) / limb ** BigInt(at)) % limb,
    )
    return `[${column.join(', ')}]::DOUBLE[]`
  })
}

/** The limbs of a sum, each carried into the next; `text` writes one limb. The first limb is the lowest. */
function carried(digits: string, tables: readonly string[], limb: bigint, text: (limb: string) => string): string {
  const limbs = tables.map((table) => `list_inner_product(${digits}, list_slice(${table}, 1, len(${digits})))::BIGINT`)
  const items = `list_transform([${[...limbs, '0'].join(', ')}], lambda v: struct_pack(c := v, t := ''))`
  return `struct_extract(list_reduce(${items}, lambda a, e: struct_pack(c := e.c + a.c // ${limb}, t := ${text(`(a.c % ${limb})`)} || a.t)), 't')`
}

export function base58Macros(schema: string): string[] {
  const digits = `list_reverse(list_transform(string_split(s, ''), lambda d: (strpos('${ALPHABET}', d) - 1)::DOUBLE))`
  const number = carried(digits, powers(58n, BYTE_LIMB, DIGITS_MAX, 22), BYTE_LIMB, (limb) => `printf('%06X', ${limb})`)
  const zeros = "strlen(s) - strlen(ltrim(s, '1'))"
  const hexDigits = `ltrim(${number}, '0')`
  const bytes = `list_reverse(list_transform(range(1, octet_length(b) + 1), lambda i: CAST('0x' || substring(hex(b), i * 2 - 1, 2) AS DOUBLE)))`
  const byteNumber = bytes.replace(
    "CAST('0x' || substring(hex(b), i * 2 - 1, 2) AS DOUBLE)",
    "CAST(CAST('0x' || substring(hex(b), i * 2 - 1, 2) AS INTEGER) AS DOUBLE)",
  )
  const char = (limb: string, power: number): string =>
    `substring('${ALPHABET}', CAST(${limb} // ${58 ** power} % 58 AS INTEGER) + 1, 1)`
  const letters = carried(
    byteNumber,
    powers(256n, DIGIT_LIMB, BYTES_MAX, 23),
    DIGIT_LIMB,
    (limb) => `${char(limb, 3)} || ${char(limb, 2)} || ${char(limb, 1)} || ${char(limb, 0)}`,
  )
  const zeroBytes = "(strlen(hex(b)) - strlen(regexp_replace(hex(b), '^(00)+', ''))) // 2"
  return [
    `CREATE MACRO ${schema}.base58_evened(h) AS CASE WHEN strlen(h) % 2 = 1 THEN '0' || h ELSE h END`,
    `CREATE MACRO ${schema}.base58_decode(s) AS CASE WHEN s = '' THEN ''::BLOB
       WHEN strlen(s) > ${DIGITS_MAX} THEN error('sluice: base58Decode takes at most ${DIGITS_MAX} characters (base58_length)')::BLOB
       WHEN NOT regexp_full_match(s, '[1-9A-HJ-NP-Za-km-z]+') THEN error('sluice: Invalid Base58 value')::BLOB
       ELSE unhex(repeat('00', ${zeros}) || ${schema}.base58_evened(${hexDigits})) END`,
    `CREATE MACRO ${schema}.base58_encode(b) AS CASE WHEN octet_length(b) = 0 THEN ''
       WHEN octet_length(b) > ${BYTES_MAX} THEN error('sluice: base58Encode takes at most ${BYTES_MAX} bytes (base58_length)')::VARCHAR
       ELSE repeat('1', ${zeroBytes}) || ltrim(${letters}, '1') END`,
  ]
}
