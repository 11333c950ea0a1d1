import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'

const SHOWN_MS = 1500

type CopyButtonProps = { text: () => string; label?: string; class: string; done?: string; children: ComponentChildren }

/** Copies a text; its own text changes while it says so. */
export function CopyButton({ text, label, class: name, done = 'Copied', children }: CopyButtonProps) {
  const isCopied = useSignal(false)
  return (
    <button
      type="button"
      class={name}
      aria-label={label}
      title={label}
      onClick={() => {
        void copy(text()).then((copied) => {
          isCopied.value = copied
          setTimeout(() => (isCopied.value = false), SHOWN_MS)
        })
      }}
    >
      {isCopied.value ? done : children}
    </button>
  )
}

/** Browsers offer `navigator.clipboard` only over TLS and on localhost. */
async function copy(text: string): Promise<boolean> {
  try {
    if (navigator.clipboard !== undefined) {
      await navigator.clipboard.writeText(text)
      return true
    }
    const field = document.createElement('textarea')
    field.value = text
    document.body.append(field)
    field.select()
    const copied = document.execCommand('copy')
    field.remove()
    return copied
  } catch {
    return false
  }
}
