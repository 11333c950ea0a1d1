import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type PublicProtocol, printPublicUrl, publicUrlFault } from './public-url.ts'

test('takes addresses that clients can use', () => {
  const good: [string, PublicProtocol][] = [
    ['https://rpc.example.net', 'http'],
    ['https://rpc.example.net:8899/', 'http'],
    ['https://api.example.net/solana', 'http'],
    ['http://127.0.0.1:8899', 'http'],
    ['http://[::1]:8899', 'http'],
    ['http://localhost:8899', 'http'],
    ['wss://rpc.example.net:8900', 'ws'],
    ['wss://api.example.net/ws', 'ws'],
    ['ws://127.0.0.1:8900', 'ws'],
    ['https://rpc.example.net:10010', 'grpc'],
    ['grpcs://rpc.example.net:10010', 'grpc'],
    ['http://127.0.0.1:10010/', 'grpc'],
  ]
  for (const [url, protocol] of good) assert.equal(publicUrlFault(url, protocol), undefined, url)
})

test('refuses others, and names the mistake', () => {
  const bad: [string, PublicProtocol, RegExp][] = [
    ['rpc.example.net', 'http', /give a URL such as https:\/\//],
    ['rpc.example.net:8899', 'http', /give a URL such as https:\/\//],
    ['', 'ws', /give a URL such as wss:\/\//],
    ['wss://rpc.example.net', 'http', /scheme wss does not fit/],
    ['https://rpc.example.net', 'ws', /scheme https does not fit.*wss/],
    ['ftp://rpc.example.net', 'grpc', /scheme ftp does not fit/],
    ['https://user:secret@rpc.example.net', 'http', /remove the user and password/],
    ['https://rpc.example.net/?api-key=x', 'http', /remove the query/],
    ['https://rpc.example.net/#top', 'http', /remove the query and the fragment/],
    ['https://rpc.example.net:10010/geyser', 'grpc', /remove the path/],
    ['http://rpc.example.net', 'http', /http is not encrypted: use https/],
    ['ws://10.0.0.5:8900', 'ws', /ws is not encrypted: use wss/],
    ['http://127.evil.example', 'http', /not encrypted/],
    ['https://0.0.0.0:8899', 'http', /clients cannot connect/],
    ['https://[::]:8899', 'http', /clients cannot connect/],
  ]
  for (const [url, protocol, reason] of bad) assert.match(publicUrlFault(url, protocol) ?? 'accepted', reason, url)
})

test('is printed as clients take it', () => {
  assert.equal(printPublicUrl('https://rpc.example.net/'), 'https://rpc.example.net')
  assert.equal(printPublicUrl('grpcs://rpc.example.net:10010'), 'https://rpc.example.net:10010')
  assert.equal(printPublicUrl('wss://rpc.example.net/ws'), 'wss://rpc.example.net/ws')
})
