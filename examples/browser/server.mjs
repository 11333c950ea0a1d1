import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { RPC_URL, TOKEN } from '../settings.mjs'
import { ticketUrl } from '../ticket.mjs'

/** The site's own server: it keeps the token, and gives its pages tickets. Who may have one is for the site to decide. */
async function answer(request, response) {
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
    response.writeHead(502).end('the gateway gave no ticket\n')
  }
}

const server = createServer((request, response) => void answer(request, response))
server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`open http://127.0.0.1:${server.address().port}/`)
})
