import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { RPC_URL, TOKEN } from '../settings.mjs'
import { ticketUrl } from '../ticket.mjs'

/** The site's own server: it keeps the token and issues tickets to its pages. The site decides who gets one. */
async function handleRequest(request, response) {
  try {
    if (request.method === 'POST' && request.url === '/ticket') {
      response.setHeader('cache-control', 'no-store')
      response.end(await ticketUrl(RPC_URL, TOKEN))
    } else if (request.url === '/page.js') {
      response.setHeader('content-type', 'text/javascript')
      response.end(await readFile(new URL('page.js', import.meta.url)))
    } else {
      response.setHeader('content-type', 'text/html; charset=utf-8')
      response.end(await readFile(new URL('index.html', import.meta.url)))
    }
  } catch (error) {
    console.error(error)
    response.writeHead(502).end('the gateway returned no ticket\n')
  }
}

const server = createServer((request, response) => void handleRequest(request, response))
server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`open http://127.0.0.1:${server.address().port}/`)
})
