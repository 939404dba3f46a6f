"""What every report says of a campaign's survey: key figure, tables, chart and worst inputs."""
