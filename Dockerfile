# Two stages: the first compiles better-sqlite3 and the TypeScript, the second holds only what
# runs. Both are the same Debian and the same Node.js, or the compiled module would not load.

FROM node:22.23.3-bookworm AS build
WORKDIR /app
# The lock file first: dependencies are installed anew only when it changes, not with each source
# file.
COPY package.json package-lock.json ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json ./
COPY scripts ./scripts
COPY src ./src
RUN npm run build && npm prune --omit=dev

FROM node:22.23.3-bookworm-slim
# Production unless the one who starts it says otherwise: it then refuses to start without
# SESSION_SECRET.
ENV NODE_ENV=production
# Inside a container, loopback is the container itself: nothing outside could reach 127.0.0.1.
ENV HOST=0.0.0.0
ENV PORT=3000
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY tallygate.yml ./
# The only place the app writes to. A named volume mounted here takes this owner over when it is
# first made.
RUN mkdir data && chown node:node data
VOLUME /app/data
USER node
EXPOSE 3000
# The slim image has no curl; Node.js has fetch. A start that fails counts only after the grace
# period.
HEALTHCHECK --interval=10s --timeout=3s --start-period=15s --retries=3 \
  CMD node -e "fetch('http://127.0.0.1:' + process.env.PORT + '/healthz') \
    .then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"
# Not through npm, which would keep SIGTERM to itself: the app flushes its last counts on it.
CMD ["node", "dist/cli/main.js", "serve"]
