"""The daemon under attack: kills, failing disks, damage, hostile clients, other users, jumping
clocks."""
