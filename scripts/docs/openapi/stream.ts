import { STREAM_FRAMES, subscribeMessage } from '../../../src/contract/schemas/stream.ts'
import { STREAM_PATHS } from '../../../src/contract/stream-events.ts'
import { INFO, schemaOf } from './document.ts'

const TOKEN = [{ $ref: '#/components/securitySchemes/token' }]

/** AsyncAPI 3 of the execution stream: every frame the server sends and the one message a client may send. */
export function executionAsyncApi(): object {
  const [address] = STREAM_PATHS
  const kinds = Object.keys(STREAM_FRAMES)
  const message = (name: string) => ({ $ref: `#/components/messages/${name}` })
  const onChannel = (name: string) => ({ $ref: `#/channels/stream/messages/${name}` })
  return {
    asyncapi: '3.0.0',
    id: 'urn:sluice:execution-stream',
    info: {
      ...INFO(
        'Sluice: execution stream',
        'Frames are JSON objects with `seq` first and then the name of their kind. `seq` is the cursor for a resume; control frames have 0. The frames of a snapshot, as many as `snapshot` in Hello or Subscribed, share one `seq`: that of the newest frame they contain. It is a cursor once all of them have arrived. The `seq` of every other frame is higher than that of the frame before it.',
      ),
      license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
    servers: {
      local: { host: '127.0.0.1:8443', protocol: 'ws', description: 'Local default.' },
    },
    channels: {
      stream: {
        address,
        description: `Also at ${STREAM_PATHS.slice(1).join(' and ')}.`,
        bindings: {
          ws: {
            method: 'GET',
            query: {
              type: 'object',
              properties: {
                subscribe: { type: 'string', description: 'Kinds, or a subscription as JSON.' },
                resume_from: { type: 'string', description: 'The last `seq` seen with the same subscription.' },
                ticket: { type: 'string', description: 'For clients that cannot set headers, if a token is required.' },
              },
            },
          },
        },
        messages: {
          ...Object.fromEntries(kinds.map((name) => [name, message(name)])),
          Subscribe: message('Subscribe'),
        },
      },
    },
    operations: {
      receive: {
        action: 'send',
        channel: { $ref: '#/channels/stream' },
        summary: 'Frames of the server.',
        security: TOKEN,
        messages: kinds.map(onChannel),
      },
      subscribe: {
        action: 'receive',
        channel: { $ref: '#/channels/stream' },
        summary: 'Replaces the subscription.',
        security: TOKEN,
        messages: [onChannel('Subscribe')],
      },
    },
    components: {
      securitySchemes: {
        token: {
          type: 'httpApiKey',
          in: 'header',
          name: 'x-token',
          description: 'Required if the operator configures it; `Authorization: Bearer` and a ticket are accepted too.',
        },
      },
      messages: {
        ...Object.fromEntries(
          Object.entries(STREAM_FRAMES).map(([name, schema]) => [
            name,
            { name, title: name, contentType: 'application/json', payload: schemaOf(schema, 'draft-7') },
          ]),
        ),
        Subscribe: {
          name: 'Subscribe',
          title: 'Subscribe',
          contentType: 'application/json',
          payload: schemaOf(subscribeMessage, 'draft-7'),
        },
      },
    },
  }
}
