/** Names, types and rows of a body in RowBinaryWithNamesAndTypes. */
export type RowBinaryTable = {
  readonly names: readonly string[]
  readonly types: readonly string[]
  readonly rows: readonly (readonly unknown[])[]
}

/** Reads RowBinaryWithNamesAndTypes as clickhouse.com/docs describes it. */
export function readRowBinary(body: Buffer): RowBinaryTable {
  let at = 0
  const take = (bytes: number): Buffer => {
    if (at + bytes > body.length) throw new Error(`the body ends within a value, at byte ${at}`)
    return body.subarray(at, (at += bytes))
  }
  const length = (): number => {
    let value = 0
    for (let shift = 0; ; shift += 7) {
      const byte = take(1).readUInt8()
      value += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) return value
    }
  }
  const text = (): string => take(length()).toString()
  const readValue = (type: string): unknown => {
    const [, outer = type, inner = ''] = /^(\w+)\((.*)\)$/.exec(type) ?? []
    switch (outer) {
      case 'Nullable':
        return take(1)[0] === 1 ? null : readValue(inner)
      case 'LowCardinality':
        return readValue(inner)
      case 'Array':
        return Array.from({ length: length() }, () => readValue(inner))
      case 'Nothing':
        return null
      case 'String':
        return text()
      case 'Bool':
      case 'UInt8':
        return take(1).readUInt8()
      case 'UInt16':
      case 'Date':
        return take(2).readUInt16LE()
      case 'UInt32':
      case 'DateTime':
        return take(4).readUInt32LE()
      case 'Int32':
        return take(4).readInt32LE()
      case 'UInt64':
        return take(8).readBigUInt64LE()
      case 'Int64':
      case 'DateTime64':
        return take(8).readBigInt64LE()
      case 'Float64':
        return take(8).readDoubleLE()
      default:
        throw new Error(`no reader for ${type}`)
    }
  }
  if (body.length === 0) return { names: [], types: [], rows: [] }
  const count = length()
  const names = Array.from({ length: count }, text)
  const types = Array.from({ length: count }, text)
  const rows: unknown[][] = []
  while (at < body.length) rows.push(types.map(readValue))
  return { names, types, rows }
}
