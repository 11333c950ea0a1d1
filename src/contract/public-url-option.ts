import { z } from 'zod'
import { PUBLIC_SCHEMES, type PublicProtocol, publicUrlFault } from './public-url.ts'

/** The option `publicUrl` of a listener for customers. */
export function publicUrlOption(protocol: PublicProtocol) {
  const [scheme] = PUBLIC_SCHEMES[protocol].secure
  return {
    publicUrl: z
      .string()
      .superRefine((text, context) => {
        const fault = publicUrlFault(text, protocol)
        if (fault !== undefined) context.addIssue({ code: 'custom', message: fault })
      })
      .optional()
      .describe(
        `Address that customers use, such as ${scheme}://rpc.example.net: on handover cards, in tickets and documents. Without it the address of a loopback listener is used; for any other listener none is made up.`,
      ),
  }
}
