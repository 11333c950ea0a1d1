const BLOCK_BYTES = 512

/** A tar archive (POSIX ustar) of small files with short names, readable by everyone and without a time, so that equal files give equal bytes. */
export function createTar(files: ReadonlyMap<string, Uint8Array>): Buffer {
  const blocks: Buffer[] = []
  for (const [name, body] of files) {
    blocks.push(headerOf(name, body.length), Buffer.from(body), Buffer.alloc(-body.length & (BLOCK_BYTES - 1)))
  }
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK_BYTES)])
}

/** Fields at fixed offsets; numbers are octal text. */
function headerOf(name: string, bytes: number): Buffer {
  const header = Buffer.alloc(BLOCK_BYTES)
  const octal = (value: number, offset: number, length: number) =>
    header.write(value.toString(8).padStart(length - 1, '0'), offset, 'ascii')
  header.write(name, 0, 100, 'utf8')
  octal(0o644, 100, 8)
  octal(0, 108, 8)
  octal(0, 116, 8)
  octal(bytes, 124, 12)
  octal(0, 136, 12)
  header.write('0', 156, 'ascii')
  header.write('ustar\0' + '00', 257, 'ascii')
  // The checksum is that of the header with spaces in its own field.
  header.fill(' ', 148, 156)
  let sum = 0
  for (const byte of header) sum += byte
  octal(sum, 148, 7)
  header[154] = 0
  return header
}
