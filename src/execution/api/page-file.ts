import type { IncomingMessage, ServerResponse } from 'node:http'
import { type StaticFile, sendStaticFile } from '../../platform/http/server/static-file.ts'

/** T19: the page runs only its own scripts and connects only to its own origin. */
const PAGE_HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
}

/** Sends a file of the dashboard. */
export function sendPageFile(request: IncomingMessage, response: ServerResponse, file: StaticFile): void {
  sendStaticFile(request, response, file, PAGE_HEADERS)
}
