import { createHash } from 'node:crypto'

type Sbom = {
  serialNumber?: string
  metadata: { timestamp?: string; tools?: unknown }
  components: { name: string; version: string; 'bom-ref': string }[]
}

/**
 * The bill of materials of npm without values that differ between runs: time, npm version, and the random serial number, which is derived from the
 * content instead.
 */
export function reproducibleSbom(text: string): string {
  const sbom = JSON.parse(text) as Sbom
  delete sbom.metadata.timestamp
  delete sbom.metadata.tools
  delete sbom.serialNumber
  sbom.components.sort((a, b) => (a['bom-ref'] < b['bom-ref'] ? -1 : 1))
  const hex = createHash('sha256').update(JSON.stringify(sbom)).digest('hex')
  // UUID version 8: custom content (RFC 9562).
  const uuid = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`
  return `${JSON.stringify({ ...sbom, serialNumber: `urn:uuid:${uuid}` }, undefined, 2)}\n`
}
