import { Agent, createServer, request as requestOf } from 'node:http'

/**
 * The gateway without its own HTTP parser and client: node:http on both sides, persistent connections, a token check and a bucket.
 *   node bench/reference/node-http-proxy.ts PORT UPSTREAM_PORT TOKEN
 */
const [port, upstreamPort, token] = process.argv.slice(2)
const agent = new Agent({ keepAlive: true, maxSockets: 256 })
const tokens = new Map([[token, { left: 1e12 }]])

createServer((request, response) => {
  const bucket = tokens.get(request.headers['x-token'] as string)
  if (bucket === undefined || bucket.left-- <= 0) {
    response.writeHead(bucket === undefined ? 401 : 429).end()
    return
  }
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const body = Buffer.concat(chunks)
    const headers = { 'content-type': 'application/json', 'content-length': body.length }
    const upstream = requestOf({ agent, host: '127.0.0.1', port: upstreamPort, method: 'POST', headers }, (reply) => {
      response.writeHead(reply.statusCode ?? 502, { 'content-type': 'application/json' })
      reply.pipe(response)
    })
    upstream.on('error', () => response.destroy())
    upstream.end(body)
  })
}).listen(Number(port), '127.0.0.1')
