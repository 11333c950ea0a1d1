/** Long enough for a browser that asks where to save it. */
const KEPT_MS = 10_000

/** Offers content as a file. It has an address in this page only, so that no token has to be in one. */
export function saveFile(name: string, content: Blob): void {
  const url = URL.createObjectURL(content)
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), KEPT_MS)
}
